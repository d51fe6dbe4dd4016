package examples

import (
	"errors"
	"testing"

	"golang.org/x/oauth2"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload"
)

func TestNewUploader(t *testing.T) {
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true, RequireToken: true})
	srv.AllowToken("valid")
	spec := upload.Spec{Bucket: "bucket", Object: "o"}
	for token, want := range map[string]error{"valid": nil, "expired": session.ErrCredentials} {
		up, client, err := NewUploader(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: token}), &upload.Options{Endpoint: srv.URL})
		if err != nil {
			t.Fatal(err)
		}
		defer client.CloseIdleConnections()
		if _, err := up.Bytes(t.Context(), []byte("hello"), spec); !errors.Is(err, want) {
			t.Errorf("Bytes with the token %s = %v, want %v", token, err, want)
		}
	}
	wantObject(t, srv, "bucket", "o", []byte("hello"))
}
