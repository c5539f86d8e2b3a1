'use strict';

const LIMIT = 5;

/** Return a page with the first rows of a table, for a quick look in a browser. */
function preview(table) {
  const cell = (value) => {
    let text;
    if (value === null || value === undefined) {
      text = '';
    } else if (typeof value === 'boolean') {
      text = value ? 'yes' : 'no';
    } else {
      text = String(value);
    }
    return text
      .replace(/&/g, '&amp;')
      .replace(/</g, '&lt;')
      .replace(/>/g, '&gt;')
      .replace(/"/g, '&quot;');
  };
  const items = table.rows
    .slice(0, LIMIT)
    .map((row) => `<li>${row.map(cell).join(' &middot; ')}</li>`);
  const more = table.rows.length - items.length;
  if (more > 0) {
    items.push(`<li>and ${more} more</li>`);
  }
  return `<h1>${table.columns.map(cell).join(' &middot; ')}</h1>\n<ul>\n${items.join('\n')}\n</ul>\n`;
}

module.exports = { preview };
