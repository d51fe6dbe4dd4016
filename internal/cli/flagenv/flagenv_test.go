package flagenv

import "testing"

func TestMentions(t *testing.T) {
	for _, c := range []struct {
		text string
		want bool
	}{{"--rate 1: no", true}, {"no --rate", true}, {"--rate-too 1", false}, {"--rated --rate", true}, {"rate", false}} {
		if got := mentions(c.text, "--rate"); got != c.want {
			t.Errorf("mentions(%q) = %v, want %v", c.text, got, c.want)
		}
	}
}
