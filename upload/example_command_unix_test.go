//go:build unix

package upload_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os/exec"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// Upload the output of a command. The object is published only if the command
// succeeds. The end of the output does not show whether the command crashed.
func ExampleUploader_With_confirm() {
	emulator := fakegcs.NewServer(nil, &fakegcs.Options{CreateBuckets: true})
	defer emulator.Close()
	up, err := upload.New(http.DefaultClient, &upload.Options{Endpoint: emulator.URL})
	if err != nil {
		log.Fatal(err)
	}
	dump := func(script string) error {
		cmd := exec.Command("sh", "-c", script)
		output, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() {
			output.Close() // ends the command if the upload has failed
			cmd.Wait()
		}()
		call, err := up.With(upload.CallOptions{Confirm: func(context.Context) error { return cmd.Wait() }})
		if err != nil {
			return err
		}
		_, err = call.Reader(context.Background(), output, upload.Spec{Bucket: "my-bucket", Object: "dump"})
		return err
	}

	err = dump("echo rows; exit 3")
	_, ok := emulator.Object("my-bucket", "dump")
	fmt.Println(err, ok)
	err = dump("echo rows")
	_, ok = emulator.Object("my-bucket", "dump")
	fmt.Println(err, ok)
	// Output:
	// the source is not confirmed: exit status 3 false
	// <nil> true
}
