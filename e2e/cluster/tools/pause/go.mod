module plimsoll.dev/e2e/tools/pause

go 1.25.0
