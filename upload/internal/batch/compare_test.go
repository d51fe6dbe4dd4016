package batch

import (
	"testing"
	"testing/synctest"
	"time"

	"gcsup/session"
)

// TestCompare checks what an object's size, compression and times show about a file of 8 bytes, before it is read.
func TestCompare(t *testing.T) {
	modified := time.Date(1999, 1, 1, 0, 0, 0, 5e8, time.UTC)
	const later = time.Hour // when the object was made, after the file was modified
	for _, tt := range []struct {
		name         string
		zipped       bool // the file would be compressed
		object       session.Object
		made         time.Duration
		size, byTime Likeness
	}{
		{"no time", false, session.Object{Size: 8}, later, MaybeEqual, MaybeEqual},
		{"another size", false, session.Object{Size: 9, FileModTime: modified}, later, Differs, Differs},
		{"same time", false, session.Object{Size: 8, FileModTime: modified}, later, MaybeEqual, SameTime},
		{"same second", false, session.Object{Size: 8, FileModTime: modified.Truncate(time.Second)}, later, MaybeEqual, SameTime},
		{"a second later", false, session.Object{Size: 8, FileModTime: modified.Add(time.Second)}, later, MaybeEqual, Differs},
		{"made 2 s after the file", false, session.Object{Size: 8, FileModTime: modified}, 2 * time.Second, MaybeEqual, SameTime},
		{"made less than 2 s after it", false, session.Object{Size: 8, FileModTime: modified}, 2*time.Second - 1, MaybeEqual, MaybeEqual},
		{"made before it", false, session.Object{Size: 8, FileModTime: modified.Add(time.Hour)}, -later, MaybeEqual, MaybeEqual},
		{"only the object is compressed", false, session.Object{Size: 8, Gzip: true, UncompressedSize: 8, FileModTime: modified}, later, Differs, Differs},
		{"only the file is compressed", true, session.Object{Size: 8, UncompressedSize: 8, FileModTime: modified}, later, Differs, Differs},
		{"compressed", true, session.Object{Size: 5, Gzip: true, UncompressedSize: 8, FileModTime: modified}, later, MaybeEqual, SameTime},
		{"compressed, another size", true, session.Object{Size: 8, Gzip: true, UncompressedSize: 9, FileModTime: modified}, later, Differs, Differs},
	} {
		tt.object.Created = modified.Add(tt.made)
		if got := CompareSize(tt.zipped, 8, &tt.object); got != tt.size {
			t.Errorf("%s: by its size %v, want %v", tt.name, got, tt.size)
		}
		if got := CompareTime(tt.zipped, 8, modified, &tt.object); got != tt.byTime {
			t.Errorf("%s: by its times %v, want %v", tt.name, got, tt.byTime)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		for age, want := range map[time.Duration]bool{2 * time.Second: false, 2*time.Second - 1: true, 0: true, -time.Hour: true} {
			if got := Recent(time.Now().Add(-age)); got != want {
				t.Errorf("a file modified %v ago is recent: %v", age, got)
			}
		}
	})
}
