'use strict';

const { toCsv, toMarkdown, toHtml } = require('./exporters');
const { preview } = require('./preview');
const { checkTable } = require('./table');

/** Return a table as text in a format. */
function exportTable(table, format) {
  checkTable(table);
  switch (format) {
    case 'csv':
      return toCsv(table);
    case 'markdown':
      return toMarkdown(table);
    case 'html':
      return toHtml(table);
    default:
      throw new Error(`unknown format: ${format}`);
  }
}

module.exports = { exportTable, preview };
