package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// runDoctor runs doctor with checks that take at most limit.
func runDoctor(t *testing.T, limit time.Duration, out io.Writer, args ...string) int {
	t.Helper()
	d := &doctor{std: stdio{strings.NewReader(""), out, io.Discard}, limit: limit}
	cmd := d.command()
	cmd.SetArgs(append(args, "--state-dir="+t.TempDir()))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	switch err := cmd.ExecuteContext(t.Context()).(type) {
	case nil:
		return exit.OK
	case exit.Printed:
		return int(err)
	default:
		t.Error(err)
		return -1
	}
}

// shortLimit is the limit of checks that a test lets pass. A busy machine connects in much less time.
const shortLimit = 3 * time.Second

// TestDoctorSilentEndpoint checks that doctor ends at its limit if the endpoint does not answer, and
// that it says how far the request came.
func TestDoctorSilentEndpoint(t *testing.T) {
	t.Parallel() // it mostly waits
	if checkLimit > 10*time.Second {
		t.Errorf("a check may take %v", checkLimit)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // which never accepts: the system does
	require.NoError(t, err)
	defer silent.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer cut.Close()
	var wait sync.WaitGroup
	for _, c := range []struct{ endpoint, want string }{
		{"http://" + silent.Addr().String(), "the server accepts the request, and does not answer; check that server"},
		{"https://" + silent.Addr().String(), "the TLS handshake does not end; check that server"},
		{cut.URL, "the answer of the server does not end; check that server"},
	} {
		wait.Go(func() { testSilent(t, c.endpoint, c.want) })
	}
	wait.Wait()
}

// testSilent checks the output for an endpoint that does not answer.
func testSilent(t *testing.T, endpoint, want string) {
	t.Helper()
	var out bytes.Buffer
	code := runDoctor(t, shortLimit, &out, "gs://demo", "--endpoint="+endpoint)
	if want = "\nendpoint     failed   no answer within 3s: " + want; code != exit.Temporary || !strings.Contains(out.String(), want) {
		t.Errorf("%s: exit code %d, want %d and %q\n%s", endpoint, code, exit.Temporary, want, &out)
	}
	if got := strings.Count(out.String(), "an earlier check failed"); got != 4 {
		t.Errorf("%s: %d checks were skipped, want 4\n%s", endpoint, got, &out)
	}
}

// TestDoctorNamesCheck checks that doctor prints the name of a check before it waits.
func TestDoctorNamesCheck(t *testing.T) {
	var out bytes.Buffer
	asked := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- out.String() // doctor waits for the reply, and writes nothing
		w.WriteHeader(http.StatusForbidden)
	}))
	defer srv.Close()
	runDoctor(t, checkLimit, &out, "gs://demo", "--endpoint="+srv.URL)
	if got := <-asked; !strings.HasSuffix(got, "\nendpoint     ") {
		t.Errorf("while the endpoint is asked, the output is %q", got)
	}
}

// TestDoctorStranger checks the result for a server that is not Cloud Storage. If it refuses the
// request, the exit code is that of cp.
func TestDoctorStranger(t *testing.T) {
	source := filepath.Join(t.TempDir(), "a")
	require.NoError(t, os.WriteFile(source, []byte("a"), 0o600))
	for _, c := range []struct {
		status, code int
		want         string
	}{
		{200, exit.Unavailable, "destination not found: 200 OK: the reply is not from Cloud Storage; %s does not answer like Cloud Storage: log in to this network if it has a login page, "},
		{407, exit.Permission, "credentials rejected: 407 Proxy Authentication Required: reply is not from Cloud Storage; the proxy requires a user name and a password: "},
		{403, exit.Permission, "permission denied: 403 Forbidden: reply is not from Cloud Storage; a proxy or a gateway refuses the request: "},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, "<html>")
		}))
		defer srv.Close()
		var out bytes.Buffer
		code := runDoctor(t, checkLimit, &out, "gs://demo", "--endpoint="+srv.URL)
		want := "\nendpoint     failed   " + strings.ReplaceAll(c.want, "%s", srv.URL)
		if code != c.code || !strings.Contains(out.String(), want) {
			t.Errorf("%d: exit code %d, want %d and %q\n%s", c.status, code, c.code, want, &out)
		}
		if c.status == http.StatusOK { // which cp repeats
			continue
		}
		t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
		if code, _, _ := gcsup(t, "cp", source, "gs://demo/"); code != c.code {
			t.Errorf("%d: the exit code of cp is %d, that of doctor is %d", c.status, code, c.code)
		}
		t.Setenv("STORAGE_EMULATOR_HOST", "")
	}
}

// TestDoctorManagedFolder checks that doctor asks the managed folders of the destination for permissions that the
// bucket does not grant.
func TestDoctorManagedFolder(t *testing.T) {
	gcs, err := fakegcs.New(&fakegcs.Options{Buckets: []fakegcs.Bucket{{Name: "demo", UniformAccess: true}}})
	require.NoError(t, err)
	defer gcs.Close()
	bucketGrants := []string{"storage.objects.list"}
	service := &iam{Handler: gcs}
	service.granted.Store(&bucketGrants)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/managedFolders") { // it grants what is asked for
			gcs.ServeHTTP(w, r)
			return
		}
		service.ServeHTTP(w, r)
	}))
	defer srv.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
	resp, err := http.Post(srv.URL+"/storage/v1/b/demo/managedFolders", "application/json", strings.NewReader(`{"name":"team/"}`))
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	for destination, want := range map[string]string{
		"gs://demo/team/a": "an upload can start, and objects can be listed\n",
		"gs://demo/team":   "an upload can start, and objects can be listed\n",
		"gs://demo/other":  "; storage.objects.delete is missing, unless a managed folder below other/ grants it: cp and sync cannot replace an object, ",
		"gs://demo":        "; storage.objects.delete is missing: cp and sync cannot replace an object, ",
	} {
		var out bytes.Buffer
		if code := runDoctor(t, checkLimit, &out, destination); code != exit.OK || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, want 0 and %q\n%s", destination, code, want, &out)
		}
	}
}

// TestDoctorPermissions checks what doctor prints about permissions that an upload can do without.
func TestDoctorPermissions(t *testing.T) {
	gcs, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
	require.NoError(t, err)
	defer gcs.Close()
	service := &iam{Handler: gcs}
	srv := httptest.NewServer(service)
	defer srv.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
	for _, c := range []struct {
		granted []string
		want    string
	}{
		{[]string{"storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list"}, "objects can be listed\n"},
		{[]string{"storage.objects.create", "storage.objects.get", "storage.objects.list"}, "objects can be listed; storage.objects.delete is missing: cp and sync cannot replace an object, and sync --delete deletes none\n"},
		{[]string{"storage.objects.create", "storage.objects.delete", "storage.objects.list"}, "objects can be listed; storage.objects.get is missing: --remove-source, "},
	} {
		service.granted.Store(&c.granted)
		var out bytes.Buffer
		code := runDoctor(t, checkLimit, &out, "gs://demo")
		if want := "\npermission   ok       an upload can start, and " + c.want; code != exit.OK || !strings.Contains(out.String(), want) {
			t.Errorf("with %q: exit code %d, want 0 and %q\n%s", c.granted, code, want, &out)
		}
	}
}
