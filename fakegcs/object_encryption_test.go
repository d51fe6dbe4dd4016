package fakegcs_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
)

func TestCustomerKeys(t *testing.T) {
	_, bkt := official(t, nil)
	ctx := context.Background()
	key, other := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	wr := bkt.Object("a").Key(key).NewWriter(ctx)
	wr.ChunkSize = q
	wr.Write(data(2*q + 5))
	if err := wr.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		obj  *storage.ObjectHandle
		want string
	}{{bkt.Object("a").Key(key), ""}, {bkt.Object("a"), "400"}, {bkt.Object("a").Key(other), "CustomerEncryptionKeyIsIncorrect"}} {
		rd, err := test.obj.NewReader(ctx)
		if test.want == "" {
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(rd); err != nil || !bytes.Equal(got, data(2*q+5)) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
			rd.Close()
		} else if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("read: %v, want %s", err, test.want)
		}
	}
	if attrs, err := bkt.Object("a").Attrs(ctx); err != nil || attrs.CustomerKeySHA256 == "" {
		t.Errorf("attrs: %+v, %v", attrs, err)
	}
}
