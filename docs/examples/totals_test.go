package examples

import (
	"io"
	"os"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/fakegcs"
)

func TestTotals(t *testing.T) {
	srv := fakegcs.NewServer(t, &fakegcs.Options{Objects: []fakegcs.ObjectContent{
		{Object: fakegcs.Object{Bucket: "shop", Name: "orders/1"}, Content: []byte(`{"total": 5}`)},
		{Object: fakegcs.Object{Bucket: "shop", Name: "orders/2"}, Content: []byte(`{"total": 7}`)},
	}})
	client, err := storage.NewClient(t.Context(), option.WithEndpoint(srv.URL+"/storage/v1/"), option.WithoutAuthentication())
	if err != nil {
		t.Fatal(err)
	}

	bucket := client.Bucket("shop")
	if err := Totals(t.Context(), bucket, "orders/", "report"); err != nil {
		t.Fatal(err)
	}
	r, err := bucket.Object("report").NewReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "12\n" {
		t.Errorf("the report is %q, %v; want 12", got, err)
	}
}

// TestTotalsIsAsDocumented checks that TestTotals has the set-up lines that docs/emulator/emulator.md shows,
// and none of those that they replace.
func TestTotalsIsAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../emulator/emulator.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("totals_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, diff, _ := strings.Cut(string(page), "```diff\n")
	diff, _, ok := strings.Cut(diff, "```\n")
	if !ok {
		t.Fatal("docs/emulator/emulator.md has no diff")
	}
	var added strings.Builder
	for line := range strings.Lines(diff) {
		switch line[0] {
		case '-':
			if strings.Contains(string(source), "\n\t"+line[1:]) {
				t.Errorf("the test has a line that was replaced: %s", line)
			}
		default:
			added.WriteString("\t" + line[1:])
		}
	}
	if !strings.Contains(string(source), added.String()) {
		t.Errorf("the test does not have these lines of docs/emulator/emulator.md:\n%s", &added)
	}
}
