package parts

import "testing"

// TestTemporary checks that sync keeps the temporary objects of every form, and no other names.
func TestTemporary(t *testing.T) {
	t.Parallel()
	const random = "ABCDEFGHIJKLMNOPQRSTUVWXY2"
	for name, want := range map[string]bool{
		"gcsup-parts/x/1": true, "a/gcsup-parts/x/1": false,
		"gcsup-parts-0123456789abcdef0123-" + random + "-0000": true,
		"team/a/gcsup-parts-upload-" + random + "-c1-0031":     true,
		"team/a/gcsup-parts-upload-" + random + "-0031/x":      false,
		"team/gcsup-parts-of-a-car":                            false, "gcsup-parts-x-" + random: false, "my-gcsup-parts-upload-" + random + "-0000": false,
	} {
		if got := Temporary(name); got != want {
			t.Errorf("Temporary(%q) = %v", name, got)
		}
	}
}
