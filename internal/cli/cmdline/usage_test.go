package cmdline

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestNearest(t *testing.T) {
	names := []string{"chunk-size", "retry-for", "max-wait", "json", "all"}
	for _, c := range []struct{ name, want string }{
		{"chunk-size", "chunk-size"}, {"chunksize", "chunk-size"}, {"chunk_size", "chunk-size"}, {"retry", "retry-for"},
		{"jsno", "json"}, {"jsons", "json"}, {"parallel", ""}, {"x", ""}, {"al", "all"}, {"", ""}, {"re", ""},
	} {
		if got := Nearest(c.name, names); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.name, got, c.want)
		}
	}
	commands := []string{"cp", "resume", "uploads", "verify", "doctor", "emulator", "simulate", "version", "completion", "help"}
	for _, c := range []struct{ name, want string }{
		{"cat", ""}, {"ls", ""}, {"cop", "cp"}, {"rsync", ""}, {"pc", "cp"}, {"resum", "resume"}, {"upload", "uploads"}, {"verfiy", "verify"}, {"doc", "doctor"},
		{"vresion", "version"}, {"hlep", "help"}, {"emulate", "emulator"},
	} {
		if got := Nearest(c.name, commands); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"abc", "acb", 1}, {"jsno", "json", 1}} {
		if got := distance(c.a, c.b, 3); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestLongName checks which flag is meant if a long one has one dash.
func TestLongName(t *testing.T) {
	cmd := &cobra.Command{Use: "cp"}
	cmd.Flags().BoolP("recursive", "r", false, "")
	cmd.Flags().BoolP("quiet", "q", false, "")
	cmd.Flags().String("exclude", "", "")
	cmd.Flags().Int("jobs", 0, "")
	for rest, want := range map[string]string{ // pflag reports what remains after the letters that it knows
		"ecursive": "recursive", "uiet": "quiet", "exclude": "exclude", "jobs=4": "jobs", "transfers": "transfers",
		"e": "", "xclude": "", "ursive": "", "z": "", "obs": "",
	} {
		if got := longName(cmd, rest); got != want {
			t.Errorf("longName(%q) = %q, want %q", rest, got, want)
		}
	}
}

func TestCheckHeaders(t *testing.T) {
	for text, refused := range map[string]bool{
		"-h Cache-Control:no-cache cp a gs://b": true, "cp -h x-goog-meta-a:b a gs://b": true, "-h Content-Type: cp": true,
		"cp -h": false, "-h cp": false, "cp -h gs://b/x": false, "cp a:b -h": false, "cp -- -h a:b": false,
	} {
		if err := CheckHeaders(&cobra.Command{Use: "gcsup"}, strings.Fields(text)); (err != nil) != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}
