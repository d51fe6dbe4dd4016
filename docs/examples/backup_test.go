package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/upload"
)

func TestBackup(t *testing.T) {
	srv := emulator(t)
	dir := t.TempDir()
	files := map[string][]byte{"disk.img": content(9 << 20)}
	for i := range 20 {
		files[fmt.Sprintf("mail/%d.txt", i)] = fmt.Appendf(nil, "mail %d", i)
	}
	var size int64
	old := time.Now().Add(-time.Hour)
	for name, data := range files {
		path := write(t, dir, name, data)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		size += int64(len(data))
	}
	write(t, dir, "mail/draft.tmp", []byte("not this"))
	if err := os.Symlink("nothing", filepath.Join(dir, "mail/dangling")); err != nil {
		t.Fatal(err)
	}

	up := uploader(t, srv, upload.Options{})
	spec := upload.Spec{Bucket: "backups", Object: "monday"}
	var sent int64
	backup := func() (int, int) {
		uploaded, skipped, err := Backup(t.Context(), up, dir, spec, func(n int64) { sent = n })
		if err != nil {
			t.Fatal(err)
		}
		return uploaded, skipped
	}
	if uploaded, skipped := backup(); uploaded != 21 || skipped != 1 || sent != size {
		t.Errorf("the first backup uploaded %d files with %d bytes and skipped %d, want 21 with %d and 1", uploaded, sent, skipped, size)
	}
	for name, data := range files {
		wantObject(t, srv, "backups", "monday/"+name, data)
	}
	if _, ok := srv.Object("backups", "monday/mail/draft.tmp"); ok {
		t.Error("the temporary file was uploaded")
	}

	write(t, dir, "mail/0.txt", []byte("another mail"))
	if err := os.Remove(filepath.Join(dir, "mail/1.txt")); err != nil {
		t.Fatal(err)
	}
	if uploaded, skipped := backup(); uploaded != 1 || skipped != 20 {
		t.Errorf("the second backup uploaded %d files and skipped %d, want 1 and 20", uploaded, skipped)
	}
	wantObject(t, srv, "backups", "monday/mail/0.txt", []byte("another mail"))
}
