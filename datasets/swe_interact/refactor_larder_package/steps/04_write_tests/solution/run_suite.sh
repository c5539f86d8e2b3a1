#!/bin/bash
cd /app && tclsh tests/all.tcl
