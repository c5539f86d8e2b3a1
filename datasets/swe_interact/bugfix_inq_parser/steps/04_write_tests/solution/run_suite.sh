#!/bin/bash
make -s -C /app check
