#!/bin/sh
grep -c . /app/kinds.txt > /app/count.txt
