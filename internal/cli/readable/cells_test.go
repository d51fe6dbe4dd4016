package readable

import "testing"

func TestShortenPath(t *testing.T) {
	for _, c := range []struct {
		path  string
		width int
		want  string
	}{
		{"a/b.txt", 10, "a/b.txt"},
		{"photos/2026/november/img_0001.raw", 24, "…/november/img_0001.raw"},
		{"photos/2026/november/img_0001.raw", 15, "…/img_0001.raw"},
		{"photos/2026/november/img_0001.raw", 12, "img_0001.raw"},
		{"photos/2026/november/img_0001.raw", 11, "img_0…1.raw"},
		{"disk-image-of-november-2026.img", 20, "disk-image…-2026.img"},
		{"a/写真.tif", 8, "写真.tif"},
		{"写真コレクション.tif", 12, "写真コ….tif"},
		{"abcdef", 3, "ab…"},
		{"abcdef", 0, ""},
	} {
		got := ShortenPath(c.path, c.width)
		if got != c.want || Width(got) > c.width {
			t.Errorf("ShortenPath(%q, %d) = %q, want %q", c.path, c.width, got, c.want)
		}
	}
}
