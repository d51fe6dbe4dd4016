// Command closecheck runs the analyzer of package closecheck. In the directory upload/closecheck of a clone:
//
//	go install ./cmd/closecheck
//
// In the module that you check:
//
//	go vet -vettool="$(go env GOPATH)/bin/closecheck" ./...
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"gcsup/upload/closecheck"
)

func main() { singlechecker.Main(closecheck.Analyzer) }
