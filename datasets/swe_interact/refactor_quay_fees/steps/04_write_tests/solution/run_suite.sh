#!/bin/bash
cd /app && python3 -B -m unittest -q
