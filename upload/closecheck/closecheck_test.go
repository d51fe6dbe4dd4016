package closecheck

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

func TestAnalyzer(t *testing.T) {
	dir := t.TempDir()
	copies := map[string]string{"testdata/src": "src", "testdata/stub/upload": filepath.Join("src", uploadPath)}
	for from, to := range copies {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	analysistest.Run(t, dir, Analyzer, "faulty", "right")
}
