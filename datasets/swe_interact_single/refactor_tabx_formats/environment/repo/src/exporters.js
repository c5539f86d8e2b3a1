'use strict';

function toCsv(table) {
  const lines = [];
  const line = (cells) =>
    cells
      .map((value) => {
        let text;
        if (value === null || value === undefined) {
          text = '';
        } else if (typeof value === 'boolean') {
          text = value ? 'yes' : 'no';
        } else {
          text = String(value);
        }
        if (/[",\r\n]/.test(text)) {
          text = '"' + text.replace(/"/g, '""') + '"';
        }
        return text;
      })
      .join(',');
  lines.push(line(table.columns));
  for (const row of table.rows) {
    lines.push(line(row));
  }
  return lines.join('\r\n') + '\r\n';
}

function toMarkdown(table) {
  const lines = [];
  const line = (cells) =>
    '| ' +
    cells
      .map((value) => {
        let text;
        if (value === null || value === undefined) {
          text = '';
        } else if (typeof value === 'boolean') {
          text = value ? 'yes' : 'no';
        } else {
          text = String(value);
        }
        return text.replace(/\\/g, '\\\\').replace(/\|/g, '\\|').replace(/\r?\n/g, '<br>');
      })
      .join(' | ') +
    ' |';
  lines.push(line(table.columns));
  lines.push(
    '| ' +
      table.columns
        .map((_, at) => {
          const numbers =
            table.rows.length > 0 && table.rows.every((row) => typeof row[at] === 'number');
          return numbers ? '---:' : '---';
        })
        .join(' | ') +
      ' |',
  );
  for (const row of table.rows) {
    lines.push(line(row));
  }
  return lines.join('\n') + '\n';
}

function toHtml(table) {
  const lines = ['<table>'];
  const line = (cells, tag) =>
    '  <tr>' +
    cells
      .map((value, at) => {
        let text;
        if (value === null || value === undefined) {
          text = '';
        } else if (typeof value === 'boolean') {
          text = value ? 'yes' : 'no';
        } else {
          text = String(value);
        }
        text = text
          .replace(/&/g, '&amp;')
          .replace(/</g, '&lt;')
          .replace(/>/g, '&gt;')
          .replace(/"/g, '&quot;');
        const numbers =
          table.rows.length > 0 && table.rows.every((row) => typeof row[at] === 'number');
        const align = numbers ? ' align="right"' : '';
        return `<${tag}${align}>${text}</${tag}>`;
      })
      .join('') +
    '</tr>';
  lines.push(line(table.columns, 'th'));
  for (const row of table.rows) {
    lines.push(line(row, 'td'));
  }
  lines.push('</table>');
  return lines.join('\n') + '\n';
}

module.exports = { toCsv, toMarkdown, toHtml };
