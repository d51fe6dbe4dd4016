package main

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// permissions are the permissions of the service, with the operations that need them.
var permissions = map[string][]faults.Op{
	"storage.objects.create":             {faults.OpStart, faults.OpInsert, faults.OpPartsStart, faults.OpPartsPut, faults.OpPartsComplete, faults.OpCompose},
	"storage.objects.delete":             {faults.OpDelete},
	"storage.objects.get":                {faults.OpGet, faults.OpRead, faults.OpCompose},
	"storage.objects.list":               {faults.OpList},
	"storage.objects.update":             {faults.OpPatch},
	"storage.multipartUploads.create":    {faults.OpPartsStart, faults.OpPartsPut, faults.OpPartsComplete},
	"storage.multipartUploads.listParts": {faults.OpPartsList},
	"storage.multipartUploads.abort":     {faults.OpPartsAbort},
	"storage.buckets.get":                {faults.OpBucketGet, faults.OpNotificationList},
}

// replacing are the operations that need the permission to delete if the object exists.
var replacing = []faults.Op{faults.OpStart, faults.OpInsert, faults.OpPartsStart, faults.OpPartsComplete, faults.OpCompose}

// without returns the faults that answer 403 to all requests to the bucket demo that need a permission that is not
// granted. The object old exists.
func without(granted []string) (plan []faults.Fault) {
	for name, ops := range permissions {
		if slices.Contains(granted, name) {
			continue
		}
		deny := func(match faults.Match) {
			match.Bucket = "demo"
			plan = append(plan, faults.Fault{Match: match, Times: -1, Do: faults.Action{
				Effect: faults.EffectStatus, Status: http.StatusForbidden, Reason: "forbidden",
				Message: "gcsup@example.com does not have " + name + " access to the Google Cloud Storage object.",
			}})
		}
		for _, op := range ops {
			deny(faults.Match{Op: op})
		}
		if name == "storage.objects.delete" {
			for _, op := range replacing {
				deny(faults.Match{Op: op, Object: "old"})
			}
		}
	}
	return plan
}

// iam answers which of its permissions an account has, as the service does.
type iam struct {
	http.Handler
	granted atomic.Pointer[[]string]
}

func (s *iam) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/iam/testPermissions") {
		query := r.URL.Query()
		asked := slices.DeleteFunc(query["permissions"], func(p string) bool { return !slices.Contains(*s.granted.Load(), p) })
		if len(asked) == 0 {
			asked = []string{"storage.none"} // fakegcs grants what is asked for
		}
		query["permissions"] = asked
		r.URL.RawQuery = query.Encode()
	}
	s.Handler.ServeHTTP(w, r)
}

// feature is a row of docs/reference/permissions.md with a command that uses it.
type feature struct {
	row   string
	args  []string
	stdin string
	left  string   // an upload of the file large to this name is left unfinished, see leave
	leave []string // flags of that upload
}

// TestPermissions runs each feature in docs/reference/permissions.md with the permissions of its row, and with one
// less.
func TestPermissions(t *testing.T) {
	if testing.Short() {
		t.Skip("runs each feature several times")
	}
	page, err := os.ReadFile("../../docs/reference/permissions.md")
	require.NoError(t, err)
	type row struct{ needs, uses []string }
	rows := map[string]row{}
	table, _, _ := strings.Cut(string(page), "\n\nNo test runs these rows")
	word := regexp.MustCompile(`storage\.[a-zA-Z.]+[a-zA-Z]`)
	for _, m := range regexp.MustCompile(`(?m)^\| (.*?) \| (.*?) \|(.*) ?\|$`).FindAllStringSubmatch(table, -1) {
		if m[1] != "feature" {
			rows[m[1]] = row{word.FindAllString(m[2], -1), word.FindAllString(m[3], -1)}
		}
	}
	const (
		create   = "`cp` of new objects, from files or a stream, also with `--spool`"
		replace  = "`cp` that replaces objects"
		tree     = "`cp -r`"
		compare  = "`cp -r` with `--no-clobber` or `--skip-identical`, `sync`"
		session  = "`resume`, `uploads cancel`, `show` and `prune` of an upload over one connection"
		composed = "`cp --parallel N --parallel-by=compose`"
	)
	compose := []string{"--parallel=2", "--parallel-by=compose"}
	covered := map[string]bool{}
	for _, f := range []feature{
		{row: create, args: []string{"cp", "small", "large", "gs://demo/new/"}},
		{row: create, args: []string{"cp", "-", "gs://demo/stream"}, stdin: "x"},
		{row: create, args: []string{"cp", "-", "gs://demo/stream", "--spool=spool"}, stdin: "x"},
		{row: replace, args: []string{"cp", "large", "gs://demo/old"}},
		{row: replace, args: []string{"cp", "small", "gs://demo/old"}},
		{row: tree, args: []string{"cp", "-r", "tree", "gs://demo/new/"}},
		{row: compare, args: []string{"cp", "-r", "-n", "tree", "gs://demo/"}},
		{row: compare, args: []string{"cp", "-r", "--skip-identical", "tree", "gs://demo/"}},
		{row: compare, args: []string{"sync", "tree", "gs://demo/new"}},
		{row: "`sync --delete`", args: []string{"sync", "--delete", "--max-delete=100%", "tree", "gs://demo/extra"}},
		{row: "`cp --remove-source`, `outbox run`", args: []string{"cp", "--remove-source", "small", "gs://demo/new/"}},
		{row: "`verify` of one file", args: []string{"verify", "small", "gs://demo/old"}},
		{row: "`verify -r`, `verify -r --extra`", args: []string{"verify", "-r", "--extra", "tree/.", "gs://demo/same"}},
		{row: "`verify --manifest`", args: []string{"verify", "--manifest", "record.jsonl"}},
		{row: "`cp --parallel N --parallel-by=multipart`", args: []string{"cp", "--parallel=2", "--parallel-by=multipart", "large", "gs://demo/new/"}},
		{row: composed, args: append([]string{"cp", "large", "gs://demo/new/"}, compose...)},
		{row: session, args: []string{"resume", "--all"}, left: "gs://demo/left"},
		{row: session, args: []string{"uploads", "cancel", "--all"}, left: "gs://demo/left"},
		{row: session, args: []string{"uploads", "prune"}, left: "gs://demo/left"},
		{row: session, args: []string{"uploads", "list", "--refresh"}, left: "gs://demo/left"},
		{row: "`uploads cancel` of an upload in parts, by multipart", args: []string{"uploads", "cancel", "--all"}, left: "gs://demo/left", leave: []string{"--parallel=2"}},
		{row: "`uploads cancel` of an upload in parts, by compose", args: []string{"uploads", "cancel", "--all"}, left: "gs://demo/left", leave: compose},
		{row: "`doctor`", args: []string{"doctor", "gs://demo"}},
	} {
		r, ok := rows[f.row]
		if !ok {
			t.Errorf("docs/reference/permissions.md has no row %s", f.row)
			continue
		}
		covered[f.row] = true
		t.Run(f.row+" "+strings.Join(f.args, " "), func(t *testing.T) {
			less := func(all []string, one string) []string {
				return slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p == one })
			}
			all := slices.Concat(r.needs, r.uses)
			for _, granted := range [][]string{r.needs, all} {
				if code, text := f.run(t, granted); code != exit.OK {
					t.Errorf("with %v: exit code %d\n%s", granted, code, text)
				}
			}
			for _, missing := range r.needs {
				if code, text := f.run(t, less(all, missing)); code != exit.Permission || !strings.Contains(text, missing) {
					t.Errorf("without %s: exit code %d\n%s", missing, code, text)
				}
			}
			for _, missing := range r.uses {
				if code, text := f.run(t, less(all, missing)); code != exit.OK {
					t.Errorf("without %s: exit code %d\n%s", missing, code, text)
				}
			}
		})
	}
	for name := range rows {
		if !covered[name] {
			t.Errorf("no command for the row %s", name)
		}
	}
}

// run runs the command of a feature with a new server, and returns its exit code and its messages.
func (f *feature) run(t *testing.T, granted []string) (code int, text string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Mkdir("spool", 0o700))
	sizes := map[string]int{"small": 1000, "tree/a": 1000, "tree/b": 2000}
	if f.left != "" || slices.Contains(f.args, "large") {
		sizes["large"] = 9 << 20
	}
	for name, size := range sizes {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, bytes.Repeat([]byte{byte(size)}, size), 0o600))
	}
	gcs, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
	require.NoError(t, err)
	service := &iam{Handler: gcs}
	service.granted.Store(&granted)
	srv := httptest.NewServer(service)
	defer srv.Close()
	defer gcs.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
	t.Setenv("GCSUP_STATE_DIR", filepath.Join(dir, "state"))
	command := func(want int, args ...string) {
		t.Helper()
		if code, _, messages := gcsup(t, args...); code != want {
			t.Fatalf("%q: exit code %d\n%s", args, code, messages)
		}
	}
	all := slices.Sorted(maps.Keys(permissions))
	service.granted.Store(&all)
	command(exit.OK, "cp", "small", "gs://demo/old")
	for name, args := range map[string][]string{
		"gs://demo/extra": {"cp", "small", "gs://demo/extra/x"},
		"gs://demo/same":  {"cp", "-r", "tree/.", "gs://demo/same"},
		"record.jsonl":    {"cp", "--manifest=record.jsonl", "small", "gs://demo/recorded"},
	} {
		if slices.Contains(f.args, name) {
			command(exit.OK, args...)
		}
	}
	if f.left != "" {
		for _, op := range []faults.Op{faults.OpFinalize, faults.OpPartsComplete, faults.OpCompose} {
			match := faults.Match{Op: op}
			if len(f.leave) > 0 && op == faults.OpFinalize {
				continue // of the parts
			}
			require.NoError(t, gcs.AddFaults(faults.Fault{Match: match, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}))
		}
		command(exit.Temporary, slices.Concat([]string{"cp", "--retry-for=1ms", "large", f.left}, f.leave)...)
		gcs.ClearFaults()
	}
	service.granted.Store(&granted)
	require.NoError(t, gcs.AddFaults(without(granted)...))
	var out, messages strings.Builder // the two streams are written at the same time
	code = execute(t.Context(), f.args, stdio{strings.NewReader(f.stdin), &out, &messages})
	return code, out.String() + messages.String()
}
