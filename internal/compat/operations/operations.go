// Package operations runs ordinary operations of the official Go library on the server at
// STORAGE_EMULATOR_HOST, and prints which of them pass. The comparison in docs/emulator/emulator.md counts
// them. With -json the library reads objects with the JSON API instead of the XML API.
package operations

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"
)

// Main is the program. It returns its exit code.
func Main(args []string) int {
	flags := flag.NewFlagSet("operations", flag.ExitOnError)
	jsonReads := flags.Bool("json", false, "read objects with the JSON API")
	_ = flags.Parse(args) // which ends the program if it fails
	if os.Getenv("STORAGE_EMULATOR_HOST") == "" {
		fmt.Fprintln(os.Stderr, "operations: STORAGE_EMULATOR_HOST is not set: start an emulator and set it to its URL")
		return 64
	}
	ctx := context.Background()
	client, err := newClient(ctx, *jsonReads)
	if err != nil {
		fmt.Fprintln(os.Stderr, "operations:", err)
		return 1
	}
	passed := 0
	for i, op := range operations {
		if err := run(ctx, client, fmt.Sprintf("operations-%d-%d", i, time.Now().UnixNano()), op); err != nil {
			fmt.Printf("FAIL %s: %v\n", op.name, err)
			continue
		}
		passed++
		fmt.Println("ok  ", op.name)
	}
	fmt.Printf("%d of %d operations pass\n", passed, len(operations))
	return 0
}

// newClient returns a client of the server at STORAGE_EMULATOR_HOST. It repeats no request.
func newClient(ctx context.Context, jsonReads bool) (*storage.Client, error) {
	var opts []option.ClientOption
	if jsonReads {
		opts = append(opts, storage.WithJSONReads())
	}
	client, err := storage.NewClient(ctx, opts...)
	if err != nil {
		return nil, err
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	return client, nil
}

// run makes a bucket and runs an operation in it, for at most ten seconds.
func run(ctx context.Context, client *storage.Client, bucket string, op operation) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := client.Bucket(bucket).Create(ctx, "p", nil); err != nil {
		return fmt.Errorf("create the bucket: %w", err)
	}
	return op.do(ctx, place{client, client.Bucket(bucket)})
}
