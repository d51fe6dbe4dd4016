package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/api/option"
)

// officialBucket returns a handle of the official library.
func officialBucket(ts *testscript.TestScript, bucket string) *storage.BucketHandle {
	c, err := storage.NewClient(context.Background(), option.WithEndpoint(ts.Getenv("STORAGE_EMULATOR_HOST")+"/storage/v1/"), option.WithoutAuthentication())
	ts.Check(err)
	ts.Defer(func() { _ = c.Close() })
	return c.Bucket(bucket)
}

func officialObject(ts *testscript.TestScript, gs string) *storage.ObjectHandle {
	bucket, object, err := parseDestination(gs)
	ts.Check(err)
	return officialBucket(ts, bucket).Object(object)
}

func scriptRequesterPays(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 1, "requester-pays BUCKET")
	_, err := officialBucket(ts, args[0]).Update(context.Background(), storage.BucketAttrsToUpdate{RequesterPays: true})
	ts.Check(err)
}

// scriptAttributes prints what the official library returns for an object, one
// attribute per line.
func scriptAttributes(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 1, "attributes gs://BUCKET/OBJECT")
	a, err := officialObject(ts, args[0]).Attrs(context.Background())
	ts.Check(err)
	w := ts.Stdout()
	fmt.Fprintf(w, "type=%s\nencoding=%s\ndisposition=%s\nlanguage=%s\ncache=%s\nclass=%s\n", a.ContentType, a.ContentEncoding, a.ContentDisposition, a.ContentLanguage, a.CacheControl, a.StorageClass)
	fmt.Fprintf(w, "custom time=%s\ntemporary=%v\nevent=%v\nkms=%s\nkey=%s\n", a.CustomTime.UTC().Format(time.RFC3339Nano), a.TemporaryHold, a.EventBasedHold, a.KMSKeyName, a.CustomerKeySHA256)
	if r := a.Retention; r != nil {
		fmt.Fprintf(w, "retention=%s until %s\n", r.Mode, r.RetainUntil.UTC().Format(time.RFC3339))
	}
	for _, key := range slices.Sorted(maps.Keys(a.Metadata)) {
		fmt.Fprintf(w, "meta %s=%s\n", key, a.Metadata[key])
	}
}

// scriptSameEncrypted compares an object with a file. The object must be encrypted
// with the key in another file.
func scriptSameEncrypted(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) == 3, "same-encrypted gs://BUCKET/OBJECT FILE KEYFILE")
	want, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	text, err := os.ReadFile(ts.MkAbs(args[2]))
	ts.Check(err)
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	ts.Check(err)
	o := officialObject(ts, args[0])
	if r, err := o.NewReader(context.Background()); err == nil {
		_ = r.Close()
		ts.Fatalf("%s can be read without a key", args[0])
	}
	r, err := o.Key(key).NewReader(context.Background())
	ts.Check(err)
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		ts.Fatalf("%s: %d bytes, %v; they are not the %d bytes of %s", args[0], len(got), err, len(want), args[1])
	}
}

// scriptNoText checks that no file below a directory, or no file of that name, has
// a text.
func scriptNoText(ts *testscript.TestScript, neg bool, args []string) {
	misused(ts, neg, len(args) >= 2, "no-text TEXT FILE...")
	for _, name := range args[1:] {
		data, err := os.ReadFile(ts.MkAbs(name))
		ts.Check(err)
		if len(data) > 0 && strings.Contains(string(data), args[0]) {
			ts.Fatalf("%s has %q", name, args[0])
		}
	}
}
