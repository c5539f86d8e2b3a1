#!/bin/sh
sort -u /app/basket.txt > /app/kinds.txt
