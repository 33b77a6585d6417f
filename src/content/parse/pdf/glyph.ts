/** The properties of a run of text that the file draws in one operation. */
export type TextStyle = {
  /** Height of the type in points, with its matrix applied. */
  size: number;
  font: string;
  /** 400 is regular, 700 bold. */
  weight: number;
  italic: boolean;
  mono: boolean;
  /** A font of symbols, such as Wingdings. */
  symbols: boolean;
  /** The colour that fills its shapes, as 0xRRGGBB. */
  colour: number;
  /** Number of the marked content in the page's structure, or -1. */
  markedContent: number;
  artifact: boolean;
};

/** One character (or a word) and its position, in points from the upper left corner of the page as displayed. */
export type Glyph = {
  character: string;
  left: number;
  right: number;
  top: number;
  bottom: number;
  baseline: number;
  /** Direction of the text: 0 to the right, 1 up, 2 to the left, 3 down. */
  turn: number;
  style: TextStyle;
  /** Inserted by the engine (a space or a line end). Its position is meaningless. */
  generated: boolean;
  hyphen: boolean;
  /** The left and right edges of its ink. Only read on pages with right-to-left scripts. */
  inkLeft?: number;
  inkRight?: number;
};

/** A straight line or thin bar, as in ruled tables. */
export type Rule = { left: number; right: number; top: number; bottom: number };
