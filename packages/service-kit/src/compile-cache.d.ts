/** Loaded for its effect: compiled code is kept between starts. */
export {}
