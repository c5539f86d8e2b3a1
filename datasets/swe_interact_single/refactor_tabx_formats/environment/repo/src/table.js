'use strict';

/** Throw a TypeError unless the value is a table. */
function checkTable(table) {
  if (!table || !Array.isArray(table.columns) || !Array.isArray(table.rows)) {
    throw new TypeError('not a table');
  }
  for (const [at, row] of table.rows.entries()) {
    if (!Array.isArray(row) || row.length !== table.columns.length) {
      throw new TypeError(`row ${at + 1} does not have ${table.columns.length} cells`);
    }
  }
}

module.exports = { checkTable };
