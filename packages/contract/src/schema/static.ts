import type {
  TArray,
  TBoolean,
  TInteger,
  TLiteral,
  TNumber,
  TObject,
  TProperties,
  TRecord,
  TSchema,
  TString,
  TUnion,
  TUnsafe,
} from 'typebox'

/**
 * Gives the type of the values of a schema that `type.ts` makes. TypeBox's own `Static` distinguishes 30 kinds of
 * schema with up to seven parameters; with it, the compiler made 893,000 types to check the page instead of 276,000.
 */
export type Static<Schema extends TSchema> =
  Schema extends TUnsafe<infer Value>
    ? Value
    : Schema extends TObject<infer Properties>
      ? ObjectOf<Properties>
      : Schema extends TArray<infer Item>
        ? Static<Item>[]
        : Schema extends TString
          ? string
          : Schema extends TInteger | TNumber
            ? number
            : Schema extends TBoolean
              ? boolean
              : Schema extends TLiteral<infer Value>
                ? Value
                : Schema extends TUnion<infer Members>
                  ? Static<Members[number]>
                  : Schema extends TRecord<string, infer Value>
                    ? Record<string, Static<Value>>
                    : unknown

type IsOptional = { readonly '~optional': true }

type ObjectOf<Properties extends TProperties> = Flat<
  {
    [Key in keyof Properties as Properties[Key] extends IsOptional ? never : Key]: Static<Properties[Key]>
  } & {
    [Key in keyof Properties as Properties[Key] extends IsOptional ? Key : never]?: Static<Properties[Key]>
  }
>

type Flat<Value> = { [Key in keyof Value]: Value[Key] }
