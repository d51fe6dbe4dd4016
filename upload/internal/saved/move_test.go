package saved

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/state"
)

// fullDisk is a store that cannot save.
type fullDisk struct{ state.Store }

var errFull = errors.New("the disk is full")

func (fullDisk) Save(context.Context, *state.Token) error { return errFull }

// TestLockWhenAMoveCannotBeCompleted checks that the error is that of the store. It was one about
// an ID that is not valid.
func TestLockWhenAMoveCannotBeCompleted(t *testing.T) {
	dir, err := state.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	moved := state.Token{
		ID: "00112233445566778899", MovedFrom: "99887766554433221100", Endpoint: "http://gcs.test",
		Spec: session.Spec{Bucket: "bkt", Object: "obj"}, SourcePath: "/source", Source: chunk.Identity{Size: 1},
	}
	moved.URI, moved.Created = someURI(t), time.Now()
	if err := dir.Save(t.Context(), &moved); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Lock(t.Context(), fullDisk{dir}, moved.ID); !errors.Is(err, errFull) {
		t.Errorf("%v, want %v", err, errFull)
	}
}

// someURI returns a URI from a reply: no other code can make one.
func someURI(t *testing.T) session.URI {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+r.Host+"/upload/storage/v1/b/bkt/o?uploadType=resumable&upload_id=x")
	}))
	defer srv.Close()
	client, err := session.NewClient(srv.Client(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	uri := client.Start(t.Context(), session.Spec{Bucket: "bkt", Object: "obj"}, 1).URI
	if uri.IsZero() {
		t.Fatal("no URI")
	}
	return uri
}
