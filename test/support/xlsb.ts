import { relations, zip } from './office-parts.ts';

/** A record of a binary workbook. Its type and length are in groups of seven bits. */
export function record(type: number, ...fields: Buffer[]): Buffer {
  const body = Buffer.concat(fields);
  return Buffer.concat([Buffer.from([...varied(type), ...varied(body.byteLength)]), body]);
}

function varied(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varied(value >>> 7)];
}

export function integer(value: number, bytes = 4): Buffer {
  const field = Buffer.alloc(bytes);
  field.writeUIntLE(value, 0, bytes);
  return field;
}

export function double(value: number): Buffer {
  const field = Buffer.alloc(8);
  field.writeDoubleLE(value);
  return field;
}

export function wide(text: string): Buffer {
  return Buffer.concat([integer(text.length), Buffer.from(text, 'utf16le')]);
}

/** The column and style of a cell. */
export function cell(column: number, style = 0): Buffer {
  return Buffer.concat([integer(column), integer(style, 3), integer(0, 1)]);
}

const sheetRecords = [
  record(0, integer(0)),
  record(7, cell(0), integer(0)),
  record(6, cell(1), wide('Arrived')),
  record(0, integer(1)),
  record(8, cell(0), wide('Aurora')),
  record(5, cell(1, 1), double(45_292)),
];

/** A binary Excel workbook of one sheet with these records. */
export function xlsb(sheet: Buffer[] = sheetRecords): Uint8Array {
  const relation = (number: number, type: string, target: string): [string, string, string] => [
    `rId${number}`,
    type,
    target,
  ];
  return zip({
    '_rels/.rels': relations([relation(1, 'officeDocument', 'xl/workbook.bin')]),
    'xl/_rels/workbook.bin.rels': relations([
      relation(1, 'worksheet', 'worksheets/sheet1.bin'),
      relation(2, 'styles', 'styles.bin'),
      relation(3, 'sharedStrings', 'sharedStrings.bin'),
    ]),
    'xl/workbook.bin': record(156, integer(0), integer(1), wide('rId1'), wide('Harbour report')),
    'xl/styles.bin': Buffer.concat([
      record(617),
      record(47, integer(0, 2), integer(0, 2)),
      record(47, integer(0, 2), integer(14, 2)),
      record(618),
    ]),
    'xl/sharedStrings.bin': record(19, integer(0, 1), wide('Ship')),
    'xl/worksheets/sheet1.bin': Buffer.concat(sheet),
  });
}
