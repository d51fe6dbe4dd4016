package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestResumeInAnotherProgram checks that a program which uses neither Parts nor Spool resumes
// an upload in parts and a stream in a spool. The other program is this one, in another process.
func TestResumeInAnotherProgram(t *testing.T) {
	const endpointVar, storeVar = "GCSUP_TEST_RESUME_AT", "GCSUP_TEST_RESUME_FROM"
	if endpoint := os.Getenv(endpointVar); endpoint != "" {
		resumeAll(t, endpoint, os.Getenv(storeVar))
		return
	}
	t.Parallel()
	srv, err := fakegcs.New(&fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpCompose}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
		{Match: faults.Match{Op: faults.OpFinalize, Object: "stream"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.CreateBucket(fakegcs.Bucket{Name: "bkt"}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(srv)
	defer server.Close()
	dir := t.TempDir()
	store, err := state.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	first, err := upload.New(http.DefaultClient, &upload.Options{
		Endpoint: server.URL, Store: store, Parallel: &upload.Parts{Connections: 2, MinPart: mib, Join: upload.ByCompose}, Spool: &upload.Spool{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	first = withCall(first, upload.CallOptions{Retries: -1})
	content := data(9*mib + 5)
	path := t.TempDir() + "/file"
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	_, ferr := first.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "file"})
	_, serr := first.Reader(t.Context(), bytes.NewReader(content), upload.Spec{Bucket: "bkt", Object: "stream"})
	for _, err := range []error{ferr, serr} {
		if !errors.Is(err, session.ErrRetriesExhausted) {
			t.Fatal(err)
		}
	}
	srv.ClearFaults()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestResumeInAnotherProgram$")
	cmd.Env = append(os.Environ(), endpointVar+"="+server.URL, storeVar+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"file", "stream"} {
		if got, err := srv.ReadObject("bkt", name); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// resumeAll is the other program.
func resumeAll(t *testing.T, endpoint, dir string) {
	store, err := state.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	up, err := upload.New(http.DefaultClient, &upload.Options{Endpoint: endpoint, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	resumed := 0
	for saved, err := range up.Saved(t.Context()) {
		if err == nil {
			_, err = up.Resume(t.Context(), saved.ID)
		}
		if err != nil {
			t.Error(fmt.Errorf("%s: %w", saved.Source(), err))
		}
		resumed++
	}
	if resumed != 2 {
		t.Errorf("%d uploads were saved, want 2", resumed)
	}
}
