package result_test

import (
	"encoding/json"
	"testing"

	"gcsup/internal/cli/result"
	"gcsup/internal/require"
)

// TestNoControls checks that a name cannot control the terminal that displays a line, and that a reader gets the name.
func TestNoControls(t *testing.T) {
	const name = "a\x1b[2J\u009b2J\x7f\u202eb\u00e9\u4e16\U0001f600"
	line, err := result.Encode(name)
	require.NoError(t, err)
	if want := `"a\u001b[2J\u009b2J\u007f\u202eb` + "\u00e9\u4e16\U0001f600\"\n"; string(line) != want {
		t.Errorf("%q, want %q", line, want)
	}
	var got string
	if err := json.Unmarshal(line, &got); err != nil || got != name {
		t.Errorf("%q, %v", got, err)
	}
}
