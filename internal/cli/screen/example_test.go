package screen_test

import (
	"errors"
	"os"

	"gcsup/internal/cli/screen"
)

// A console removes what could control the terminal from the arguments of a message.
func ExampleConsole_Message() {
	c := screen.NewConsole(os.Stdout, false)
	c.Message("skipped %s: %v", "a\n.txt", errors.New("not a file"))
	// Output: gcsup: skipped a?.txt: not a file
}
