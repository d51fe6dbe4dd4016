package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gcsup/chunk"
	"gcsup/internal/nolink"
	"gcsup/session/state"
)

// Users who can write to an outbox can make names in it before a process opens it, for example .outbox as a link to a
// directory of root. What this package writes to is opened without following links, and must belong to the user who runs
// the outbox.

// checkDir returns an error if the directory name of the outbox is a link, or something else than a directory. It need
// not exist.
func checkDir(box, name string) error {
	dir, err := openDir(box, name)
	if err == nil {
		return dir.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkOwn is like checkDir, and also returns an error if the directory belongs to another user.
func checkOwn(box, name string) error {
	dir, err := openOwn(box, name)
	if err == nil {
		return dir.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// openDir opens the directory name of the outbox.
func openDir(box, name string) (*os.Root, error) {
	dir, err := nolink.Dir(box, name)
	if nolink.Refused(err) {
		return nil, unsafeDir{fmt.Errorf("%w: another user may have made it; remove it", err)}
	}
	return dir, err
}

// openOwn is like openDir, and returns an error if the directory belongs to another user.
func openOwn(box, name string) (*os.Root, error) {
	dir, err := openDir(box, name)
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat(".")
	if err == nil && !ownedByUs(info) {
		err = unsafeDir{fmt.Errorf("%s belongs to another user: run the outbox as that user, or remove the directory", filepath.Join(box, name))}
	}
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

// unsafeDir is an error that wraps state.ErrInsecurePermissions, too.
type unsafeDir struct{ error }

func (e unsafeDir) Unwrap() []error { return []error{e.error, state.ErrInsecurePermissions} }

// errHardLink is the error of a file that another user may have linked into the outbox.
var errHardLink = fmt.Errorf("%w with a single name (it has hard links), and others can write to its directory: one who cannot read the file may have linked it there; copy the file, or set fs.protected_hardlinks=1", chunk.ErrNotRegular)

// checkLinks returns an error if another user may have linked the file into the outbox, without being able to read it.
// Linux refuses such a link, unless fs.protected_hardlinks is 0.
func (o *Outbox) checkLinks(path string, file fs.FileInfo) error {
	if o.linksProtected || linkCount(file) < 2 {
		return nil
	}
	dir, release, err := o.box.dir(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer release()
	info, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if othersWrite(info) {
		return errHardLink
	}
	return nil
}

// linksProtected reports whether the system lets users link only files that they can read and write.
func linksProtected() bool {
	text, err := os.ReadFile("/proc/sys/fs/protected_hardlinks") // Linux only
	return err == nil && strings.TrimSpace(string(text)) == "1"
}
