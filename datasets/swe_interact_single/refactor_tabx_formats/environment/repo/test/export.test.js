'use strict';

const test = require('node:test');
const assert = require('node:assert');
const { exportTable, preview } = require('..');

const TABLE = { columns: ['name', 'n'], rows: [['a|b', 1], ['"q", <r>', 2]] };

test('csv', () => {
  assert.equal(exportTable(TABLE, 'csv'), 'name,n\r\na|b,1\r\n"""q"", <r>",2\r\n');
});

test('markdown', () => {
  assert.equal(
    exportTable(TABLE, 'markdown'),
    '| name | n |\n| --- | ---: |\n| a\\|b | 1 |\n| "q", <r> | 2 |\n',
  );
});

test('html', () => {
  assert.match(exportTable(TABLE, 'html'), /<td>&quot;q&quot;, &lt;r&gt;<\/td><td align="right">2</);
});

test('refuses what is no table', () => {
  assert.throws(() => exportTable({ columns: ['a'], rows: [[1, 2]] }, 'csv'), TypeError);
});

test('preview', () => {
  assert.match(preview(TABLE), /<h1>name &middot; n<\/h1>/);
});
