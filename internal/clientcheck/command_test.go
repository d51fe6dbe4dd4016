package clientcheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestMain makes the test binary the naive client if its first argument is "naive": the others are
// the bug and the task.
func TestMain(m *testing.M) {
	if len(os.Args) == 7 && os.Args[1] == "naive" {
		b, _ := strconv.Atoi(os.Args[2])
		task := Task{File: os.Args[3], Bucket: os.Args[4], Object: os.Args[5], Dir: os.Args[6]}
		task.Endpoint = os.Getenv("STORAGE_EMULATOR_HOST")
		if err := client(bug(b))(context.Background(), task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// command returns the naive client as a program.
func command(t *testing.T, b bug) Client {
	t.Helper()
	c, err := Command([]string{os.Args[0], "naive", fmt.Sprint(int(b)), "{file}", "{bucket}", "{object}", "{dir}"})
	require.NoError(t, err)
	return c
}

// TestKilledCommand checks that a command is killed, and continues in the second run.
func TestKilledCommand(t *testing.T) {
	v, list, err := Run(t.Context(), command(t, none), script(t, "killed"), small)
	require.NoError(t, err)
	if !v.Met || v.Outcome() != Passed || v.Cost.Twice > naiveChunk || v.Cost.Open != 0 {
		t.Errorf("%+v%s", v, conversation(list))
	}
	if !slices.ContainsFunc(list, func(x Exchange) bool { return x.Run == 2 && x.Session == 1 }) {
		t.Errorf("the second run did not use the session of the first:%s", conversation(list))
	}
}

// TestFailedCommand checks that an exit code is a failure, and that its message is kept.
func TestFailedCommand(t *testing.T) {
	v, _, err := Run(t.Context(), command(t, givesUpOn503), script(t, "503-before"), small)
	require.NoError(t, err)
	if v.End != Failed || v.Outcome() != Faulty || !strings.Contains(v.Message, "exit status 3: status 503") {
		t.Errorf("%+v", v)
	}
}

// TestCommandWithoutEnd checks that a command is ended at the limit.
func TestCommandWithoutEnd(t *testing.T) {
	o := small
	o.Limit = time.Second
	v, _, err := Run(t.Context(), command(t, asksDeadSession), script(t, "404"), o)
	require.NoError(t, err)
	if v.End != NoEnd || !v.Failed(PartTruth) {
		t.Errorf("%+v", v)
	}
}

func TestCommandThatIsMissing(t *testing.T) {
	if _, err := Command([]string{filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a program that does not exist is accepted")
	}
	if _, err := Command(nil); err == nil {
		t.Error("no command is accepted")
	}
}

func TestExpand(t *testing.T) {
	task := Task{File: "/f", Bucket: "b", Object: "o", Dir: "/d", Endpoint: "http://h:1", CA: "/ca"}
	got := task.expand([]string{"{file}", "gs://{bucket}/{object}", "--x={dir}:{endpoint}:{ca}", "{other}"})
	if want := []string{"/f", "gs://b/o", "--x=/d:http://h:1:/ca", "{other}"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAll checks that results come in the order of the scripts, and that the first error ends a check.
func TestAll(t *testing.T) {
	scripts := []Script{script(t, "plain"), script(t, "empty"), script(t, "one-byte"), script(t, "256k")}
	o := small
	o.Jobs = 3
	var names []string
	report := func(r Result) error {
		names = append(names, r.Script.Name)
		return nil
	}
	want := []string{"plain", "empty", "one-byte", "256k"}
	if err := All(t.Context(), client(none), scripts, o, report); err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v", names, err)
	}
	failed := errors.New("full")
	if err := All(t.Context(), client(none), scripts, o, func(Result) error { return failed }); err != failed {
		t.Errorf("%v, want %v", err, failed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := All(ctx, client(none), scripts, o, report); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

func TestText(t *testing.T) {
	r := Result{
		Script:    Script{Name: "x", Does: "It fails.", Fact: "A fact.", Source: "a source"},
		Verdict:   Judge(Script{Name: "x"}, Evidence{Ends: []End{Failed}, Message: "exit status 1: a\nb", Object: Absent}),
		Exchanges: []Exchange{chunk(0, Granularity, -1, 308)},
	}
	want := `failed   x
         It fails.
         object, absent: there is no object
         fact: A fact.
         source: a source
         the client failed: exit status 1: a
         | b
           1 0s  put (session 1), 262144 bytes: 308
`
	if got := r.Text(); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
