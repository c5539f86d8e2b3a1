#!/usr/bin/env node
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { exportTable, preview } = require('../src');

const USAGE = `usage: tabx [--format NAME] [--out FILE] [--preview] [FILE]
formats: csv, markdown, html
`;

function parse(words) {
  const options = { preview: false };
  const rest = [...words];
  while (rest.length > 0) {
    const word = rest.shift();
    if (word === '--format' || word === '--out') {
      if (rest.length === 0) {
        throw new Error(`${word} needs a value`);
      }
      options[word.slice(2)] = rest.shift();
    } else if (word === '--preview') {
      options.preview = true;
    } else if (word === '--help') {
      options.help = true;
    } else if (word.startsWith('-')) {
      throw new Error(`unknown option: ${word}`);
    } else {
      options.file = word;
    }
  }
  return options;
}

function formatFor(options) {
  if (options.format) {
    return options.format;
  }
  switch (path.extname(options.out || '')) {
    case '.md':
      return 'markdown';
    case '.html':
      return 'html';
    default:
      return 'csv';
  }
}

function main(words) {
  const options = parse(words);
  if (options.help) {
    process.stdout.write(USAGE);
    return;
  }
  const table = JSON.parse(fs.readFileSync(options.file || 0, 'utf8'));
  const text = options.preview ? preview(table) : exportTable(table, formatFor(options));
  if (options.out) {
    fs.writeFileSync(options.out, text);
  } else {
    process.stdout.write(text);
  }
}

try {
  main(process.argv.slice(2));
} catch (problem) {
  process.stderr.write(`tabx: ${problem.message}\n`);
  process.exitCode = 2;
}
