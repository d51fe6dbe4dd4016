//go:build unix

package configfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// changeable returns an error if other users can change a file, as ssh does for its own. Access
// control lists are not considered.
func changeable(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user (UID %d), who could redirect uploads", path, st.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others can write to %s (mode %04o), and could redirect uploads; chmod go-w it", path, mode)
	}
	return nil
}
