package configfile

import (
	"fmt"
	"io"
	"os"
)

// most is the size of the largest file that is read.
const most = 1 << 20

// Read returns the content of a file. risk is not nil if users other than this one and root can
// change the file, and thereby where uploads go. A file that is not regular is refused: the
// commands that are printed name it again, and a pipe without a writer would block.
func Read(path string) (data []byte, risk, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is a directory, a pipe or a device: want a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, nil, err
	}
	data, err = io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("%s: want at most %d bytes", path, most)
	}
	return data, changeable(path, info), err
}
