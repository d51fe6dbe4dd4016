// Package before exports a report with storage.Writer.
package before

import (
	"context"
	"fmt"
	"iter"

	"cloud.google.com/go/storage"
)

// Export writes rows to an object.
func Export(ctx context.Context, rows iter.Seq2[string, int]) error {
	client, err := storage.NewClient(ctx)
	if err != nil {
		return err
	}
	w := client.Bucket("reports").Object("today.csv").NewWriter(ctx)
	w.ContentType = "text/csv"
	w.Metadata = map[string]string{"job": "nightly"}
	for name, n := range rows {
		if _, err := fmt.Fprintf(w, "%s,%d\n", name, n); err != nil {
			return err
		}
	}
	return w.Close()
}
