package deptest_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestOutside checks that upload/otel and the examples import only what other programs can import.
func TestOutside(t *testing.T) {
	for _, dir := range []string{"upload/otel", "docs/examples"} {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", dir, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, i := range parsed.Imports {
				if path, _ := strconv.Unquote(i.Path.Value); strings.Contains(path, "/internal/") {
					t.Errorf("%s imports %s", file, path)
				}
			}
		}
	}
}
