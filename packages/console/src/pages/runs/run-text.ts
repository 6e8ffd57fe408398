/** The words of the page for those of the API. */
export const inWords = (text: string) =>
  text
    .replaceAll(/the (whole )?context/g, 'the $1text')
    .replace('filled by name:', 'from the text it took')
    .replace('set a model', 'ask your operator to set a model')
/** In the address in place of the code of an error that has none. */
export const NO_CODE = '-'
/** The sentence of an error, without its code. */
export const errorText = (error: string) => inWords(error.replace(/^\w+: /, ''))
