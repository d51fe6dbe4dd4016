// Package after exports a report with upload.Writer.
package after

import (
	"context"
	"fmt"
	"iter"

	"gcsup/upload"
	"gcsup/upload/gcs"
)

// Export writes rows to an object.
func Export(ctx context.Context, rows iter.Seq2[string, int]) error {
	up, err := gcs.NewUploader(ctx, nil)
	if err != nil {
		return err
	}
	w := up.NewWriter(ctx, upload.Spec{Bucket: "reports", Object: "today.csv"})
	defer w.Abort()
	w.ContentType = "text/csv"
	w.Metadata = map[string]string{"job": "nightly"}
	for name, n := range rows {
		if _, err := fmt.Fprintf(w, "%s,%d\n", name, n); err != nil {
			return err
		}
	}
	return w.Close()
}
