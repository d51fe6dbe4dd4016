package cmdline

import "testing"

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
	commands := []string{"cp", "resume", "sessions", "verify", "doctor", "emulator", "simulate", "version", "completion", "help"}
	for _, c := range []struct{ name, want string }{
		{"cat", ""}, {"ls", ""}, {"cop", "cp"}, {"rsync", ""}, {"pc", "cp"}, {"resum", "resume"}, {"session", "sessions"}, {"verfiy", "verify"}, {"doc", "doctor"},
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
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
