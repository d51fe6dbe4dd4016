package cmdline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/require"
)

// TestLayers checks which source sets a flag: the command line, the environment, or one of two layers.
func TestLayers(t *testing.T) {
	rules := &Rules{
		None:      []string{"dir"},
		Exclusive: [][]string{{"skip", "clobber"}, {"state", "dir"}, {"dir", "key"}},
		Yields: map[string][]string{
			"dir": {"$TEST_DIR"}, "state": {"$TEST_DIR"}, "key": {"$TEST_KEY"},
			"jobs": {"record=-"}, "record=-": {"jobs"}, "list=-": {"clobber"}, "clobber": {"list=-"}, "record": {"-", "dry"},
		},
		Needs:     map[string][]string{"key": {"state"}, "seed": {"jobs", "clobber"}, "spool": {"-"}, "limit": {"spool"}},
		Arguments: func(cmd *cobra.Command) []string { return cmd.Flags().Args() },
	}
	for _, c := range []struct{ args, env, section, all, want string }{
		{"", "", "", "", ""},
		{"", "", "", "jobs=1", "jobs=1"},
		{"", "", "jobs=2", "jobs=1", "jobs=2"},
		{"", "JOBS=3", "jobs=2", "jobs=1", "jobs=3"},
		{"--jobs=4", "JOBS=3", "jobs=2", "jobs=1", "jobs=4"},
		{"--jobs=4", "", "skip=a", "clobber=true", "jobs=4 skip=a"},
		{"--clobber", "", "skip=a", "", "clobber=true"},
		{"", "CLOBBER=1", "skip=a", "", "clobber=true"},
		{"", "CLOBBER=0", "skip=a", "", "clobber=false skip=a"},
		{"", "", "clobber=false", "skip=a,clobber=true", "clobber=false skip=a"},
		{"--clobber=false", "", "skip=a", "", "clobber=false skip=a"}, // false excludes nothing
		{"--state= --jobs=0", "", "dir=d", "", "dir=d jobs=0 state="}, // neither does an empty text
		{"", "", "state=", "dir=d", "dir=d state="},
		{"--record=r", "", "jobs=3", "", "jobs=3 record=r"}, // it is the value that excludes
		{"--record=-", "", "jobs=3", "", "record=-"},
		{"--jobs=3", "", "record=-", "", "jobs=3"},
		{"", "", "record=-", "jobs=3", "record=-"},
		{"", "", "record=-,jobs=3", "", "jobs=3 record=-"}, // the command refuses it
		{"--clobber", "", "list=a|-", "", "clobber=true"},
		{"--list=a --list=-", "", "clobber=true", "", "list=[a,-]"},
		{"--list=a", "", "clobber=true", "", "clobber=true list=[a]"},
		{"-", "", "record=r", "", ""}, // an argument
		{"x", "", "record=r", "", "record=r"},
		{"- --record=r", "", "", "", "record=r"}, // the command refuses it
		{"--dry", "RECORD=r", "", "", "dry=true"},
		{"--dry=false", "", "record=r", "", "dry=false record=r"},
		{"--record=r", "", "dry=true", "", "dry=true record=r"}, // dry does not yield
		{"--record=r", "", "dry=false", "", "dry=false record=r"},
		{"", "", "skip=a", "clobber=true", "skip=a"},
		{"", "", "skip=a,clobber=true", "", "error: --skip and --clobber exclude each other"},
		{"", "SKIP=a,CLOBBER=true", "", "", "error: --skip and --clobber exclude each other"},
		{"", "", "skip=true", "", "skip=b"},
		{"", "SKIP=false", "skip=true", "", ""}, // turned off in the layer above
		{"", "", "skip=false", "skip=a", ""},
		{"", "", "list=a|b", "list=c", "list=[a,b]"},
		{"--list=d", "", "list=a|b", "", "list=[d]"},
		{"", "", "key=k", "", ""},
		{"", "", "key=k", "dir=d", "dir=d"}, // a flag without the one that it needs excludes nothing
		{"--state=", "", "key=k", "dir=d", "dir=d state="},
		{"--state=", "", "key=k,state=s", "", "state="},
		{"", "", "seed=1", "jobs=2", "jobs=2 seed=1"},
		{"", "", "seed=1", "clobber=true", "clobber=true seed=1"}, // one of several
		{"", "", "seed=1,clobber=false", "", "clobber=false"},
		{"--clobber=false", "", "seed=1", "clobber=true", "clobber=false"},
		{"--jobs=0", "", "seed=1", "jobs=2", "jobs=0"},
		{"-", "", "limit=1", "spool=d", "limit=1 spool=d"},
		{"x", "", "limit=1", "spool=d", ""},
		{"", "", "key=k", "state=s", "key=k state=s"},
		{"", "KEY=k", "", "state=s", "key=k state=s"},
		{"--dir=d", "KEY=k", "", "state=s", "dir=d"},
		{"", "", "", "dir=d", "dir=d"},
		{"", "DIR=e", "", "", ""}, // it has no variable
		{"", "TEST_DIR=e", "", "dir=d,jobs=1", "jobs=1"},
		{"", "TEST_DIR=e", "state=s", "", ""}, // it excludes what the flag excludes
		{"", "TEST_DIR=e,STATE=s", "", "", "state=s"},
		{"--state=s", "TEST_DIR=e", "", "jobs=1", "jobs=1 state=s"},
		{"", "TEST_KEY=e", "key=k", "state=s", "state=s"},
		{"", "TEST_KEY=e,KEY=k", "", "state=s", "key=k state=s"},
		{"", "", "", "unknown=1", ""},
		{"", "", "", "jobs=x", `error: c.yaml line 7: jobs "x": want a whole number; see gcsup help`},
		{"", "JOBS=x", "", "jobs=1", `error: GCSUP_JOBS "x": want a whole number; see gcsup help`},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			cmd := &cobra.Command{Use: "gcsup"}
			fs := cmd.Flags()
			fs.Int("jobs", 0, "")
			fs.Bool("clobber", false, "")
			fs.Bool("dry", false, "")
			fs.StringArray("list", nil, "")
			for _, name := range []string{"dir", "key", "state", "record", "seed", "spool", "limit"} {
				fs.String(name, "", "")
			}
			fs.String("skip", "", "")
			fs.Lookup("skip").NoOptDefVal = "b"
			require.NoError(t, cmd.ParseFlags(strings.Fields(c.args)))
			for pair := range strings.SplitSeq(c.env, ",") {
				if name, value, ok := strings.Cut(pair, "="); ok {
					t.Setenv(map[bool]string{true: "", false: prefix}[strings.HasPrefix(name, "TEST_")]+name, value)
				}
			}
			got := ""
			if err := rules.Set(cmd, testLayer(c.section), testLayer(c.all)); err != nil {
				got = "error: " + err.Error()
			} else {
				var set []string
				fs.Visit(func(f *pflag.Flag) { set = append(set, f.Name+"="+f.Value.String()) })
				got = strings.Join(set, " ")
			}
			if want := strings.ReplaceAll(c.want, "gcsup help", FlagsOf(cmd)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// testLayer returns the layer of pairs such as jobs=1,list=a|b.
func testLayer(text string) Layer {
	layer := Layer{}
	for pair := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			layer[name] = InFile("c.yaml", 7, strings.Split(value, "|")...)
		}
	}
	return layer
}
