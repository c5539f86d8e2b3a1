import sys

from quay.cli import main

sys.exit(main())
