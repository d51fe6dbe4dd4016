package examples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"cloud.google.com/go/storage"
	"google.golang.org/api/iterator"
)

// Totals adds the totals of the orders below a prefix, and writes the sum to an object. It knows
// only the storage library. Its test began with fake-gcs-server as the emulator.
func Totals(ctx context.Context, bucket *storage.BucketHandle, prefix, report string) error {
	sum := 0
	for it := bucket.Objects(ctx, &storage.Query{Prefix: prefix}); ; {
		attrs, err := it.Next()
		if errors.Is(err, iterator.Done) {
			break
		}
		if err != nil {
			return err
		}
		total, err := orderTotal(ctx, bucket.Object(attrs.Name).Generation(attrs.Generation))
		if err != nil {
			return fmt.Errorf("%s: %w", attrs.Name, err)
		}
		sum += total
	}
	w := bucket.Object(report).If(storage.Conditions{DoesNotExist: true}).NewWriter(ctx)
	w.ContentType = "text/plain"
	_, _ = fmt.Fprintln(w, sum) // Close returns the error
	return w.Close()
}

// orderTotal returns the total of an order.
func orderTotal(ctx context.Context, object *storage.ObjectHandle) (int, error) {
	r, err := object.NewReader(ctx)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var order struct{ Total int }
	err = json.NewDecoder(r).Decode(&order)
	return order.Total, err
}
