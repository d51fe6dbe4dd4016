package main

import (
	"strings"
	"testing"

	"gcsup/internal/require"
)

// TestNoTemplates checks that no package of gcsup imports a package of templates. The linker keeps every
// exported method of a program that executes one, so that the binary exceeds its limit.
func TestNoTemplates(t *testing.T) {
	list, err := output(".", nil, "go", "list", "-deps", "-tags", tags, "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}} {{$.Imports}}{{end}}{{end}}", "../../cmd/gcsup")
	require.NoError(t, err)
	for line := range strings.Lines(list) {
		if strings.Contains(line, "/template") {
			t.Errorf("a package with templates is imported: %s", line)
		}
	}
}
