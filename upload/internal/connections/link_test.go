package connections

import "testing"

// TestLinkConnections checks the maximum of connections that the memory allows.
func TestLinkConnections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		memory      int64
		connections int
		want        int
	}{
		{128 << 20, Max, 256}, // the defaults
		{1 << 30, Max, 256},
		{32 << 20, Max, 64},
		{128 << 20, 8, 8},
		{1, Max, 1},
	} {
		l := &Link{Memory: test.memory}
		if got := l.Pool(test.connections).tuner.limit; got != test.want {
			t.Errorf("%d bytes, at most %d connections: %d, want %d", test.memory, test.connections, got, test.want)
		}
	}
}
