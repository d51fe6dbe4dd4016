package fakegcs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// The unmodified official library writes, reads back, lists and deletes objects.
func TestOfficialClient(t *testing.T) {
	for _, mode := range []string{"memory", "directory"} {
		for _, chunk := range []int{0, q, 1 << 20, 16 << 20} {
			if chunk != q && (testing.Short() || mode == "directory" && testsize.Full(0, 1) == 1) {
				continue
			}
			t.Run(fmt.Sprintf("%s/chunk=%d", mode, chunk), func(t *testing.T) {
				opts := &fakegcs.Options{}
				if mode == "directory" {
					opts.Dir = t.TempDir()
				}
				w := newWorld(t, opts)
				client, ctx := w.sdk(), t.Context()
				bkt := client.Bucket("bkt")
				for _, size := range []int{0, 1, q - 1, q, q + 1, 2 * q, 1<<20 + 7} {
					name := fmt.Sprintf("dir/a b/../ü%d", size)
					content := data(size)
					obj := bkt.Object(name).If(storage.Conditions{DoesNotExist: true})
					wr := obj.NewWriter(ctx)
					wr.ChunkSize, wr.ContentType, wr.Metadata = chunk, "text/x-test", map[string]string{"k": "v"}
					if _, err := wr.Write(content); err != nil {
						t.Fatal(err)
					}
					if err := wr.Close(); err != nil {
						t.Fatalf("size %d: %v", size, err)
					}
					attrs, err := bkt.Object(name).Attrs(ctx)
					require.NoError(t, err)
					if attrs.Size != int64(size) || attrs.CRC32C != wr.Attrs().CRC32C || attrs.Generation != wr.Attrs().Generation ||
						attrs.ContentType != "text/x-test" || attrs.Metadata["k"] != "v" || len(attrs.MD5) != 16 {
						t.Errorf("size %d: attrs = %+v", size, attrs)
					}
					rd, err := bkt.Object(name).NewReader(ctx)
					require.NoError(t, err)
					got, err := io.ReadAll(rd)
					rd.Close()
					if err != nil || !bytes.Equal(got, content) {
						t.Errorf("size %d: read back %d bytes, %v", size, len(got), err)
					}
					if size > 10 {
						rd, err := bkt.Object(name).NewRangeReader(ctx, 3, 5)
						require.NoError(t, err)
						if got, err := io.ReadAll(rd); err != nil || !bytes.Equal(got, content[3:8]) || rd.Attrs.Size != int64(size) {
							t.Errorf("size %d: range read %d bytes, %v", size, len(got), err)
						}
						rd.Close()
					}
					again := obj.NewWriter(ctx)
					again.ChunkSize = chunk
					again.Write(content)
					if err := again.Close(); err == nil || !strings.Contains(err.Error(), "412") {
						t.Errorf("overwrite with DoesNotExist = %v, want 412", err)
					}
				}
				var names []string
				for it := bkt.Objects(ctx, &storage.Query{Prefix: "dir/"}); ; {
					attrs, err := it.Next()
					if err == iterator.Done {
						break
					}
					require.NoError(t, err)
					names = append(names, attrs.Name)
				}
				if len(names) != 7 {
					t.Errorf("listed %q", names)
				}
				for _, name := range names {
					if err := bkt.Object(name).Delete(ctx); err != nil {
						t.Error(err)
					}
				}
				if _, err := bkt.Object(names[0]).Attrs(ctx); !errors.Is(err, storage.ErrObjectNotExist) {
					t.Errorf("Attrs after Delete = %v", err)
				}
				if err := bkt.Delete(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// The official library gets its tokens from the server.
func TestOfficialClientWithToken(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{RequireToken: true})
	ctx := context.Background()
	creds, err := google.CredentialsFromJSONWithType(ctx, fakegcs.NewCredentials(w.url), google.AuthorizedUser)
	require.NoError(t, err)
	client, err := storage.NewClient(ctx, option.WithEndpoint(w.url+"/storage/v1/"), option.WithTokenSource(creds.TokenSource))
	require.NoError(t, err)
	defer client.Close()
	anyone, err := storage.NewClient(ctx, option.WithEndpoint(w.url+"/storage/v1/"), option.WithoutAuthentication())
	require.NoError(t, err)
	defer anyone.Close()
	wr := client.Bucket("bkt").Object("x").NewWriter(ctx)
	wr.Write(data(9))
	require.NoError(t, wr.Close())
	var refused *googleapi.Error
	if _, err := anyone.Bucket("bkt").Object("x").Attrs(ctx); !errors.As(err, &refused) || refused.Code != 401 {
		t.Errorf("without a token: %v, want 401", err)
	}
}
