package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/exit"
	"gcsup/session"
)

// encryptionKeyEnv names the environment variable with the base64 of the
// customer-supplied encryption key.
const encryptionKeyEnv = "GCSUP_ENCRYPTION_KEY"

// keyFlags find the customer-supplied encryption key. The key is never an
// argument, because every user of a machine can list those.
type keyFlags struct {
	file string
}

func (f *keyFlags) add(fs *pflag.FlagSet, purpose string) {
	fs.StringVar(&f.file, "encryption-key-file", "", purpose+" in `FILE`: the base64 of 32 bytes (default: $"+encryptionKeyEnv+")")
}

// name returns where the key comes from.
func (f *keyFlags) name() string {
	if f.file != "" {
		return "--encryption-key-file"
	}
	return encryptionKeyEnv
}

// read returns the key, or the zero key if there is none. Its errors do not
// contain the text of the file or the variable.
func (f *keyFlags) read() (session.EncryptionKey, error) {
	text := os.Getenv(encryptionKeyEnv)
	if f.file != "" {
		var err error
		if text, err = readKeyFile(f.file); err != nil {
			return session.EncryptionKey{}, exit.WithKind(fmt.Errorf("--encryption-key-file: %w", err), exit.ErrSource)
		}
	} else if text == "" {
		return session.EncryptionKey{}, nil
	}
	key, err := session.ParseEncryptionKey(text)
	if err != nil {
		return key, exit.Usagef("%s: want the base64 of 32 bytes, such as the output of openssl rand -base64 32", f.name())
	}
	return key, nil
}

// keyFromEnv reports whether the key of a command comes from the environment.
func keyFromEnv(given *pflag.FlagSet) bool {
	return given.Lookup("encryption-key-file") != nil && !given.Changed("encryption-key-file") && os.Getenv(encryptionKeyEnv) != ""
}

// readKeyFile reads a file, but at most as many bytes as a key needs.
func readKeyFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, 1<<10))
	return string(data), err
}

// checkKeyTarget refuses to send a key over plain HTTP to another machine.
func checkKeyTarget(key session.EncryptionKey, c *connection) error {
	u, err := url.Parse(c.endpoint)
	fromHost := c.options.Endpoint == "" && os.Getenv("STORAGE_EMULATOR_HOST") != "" // --endpoint has priority
	if key.IsZero() || err != nil || u.Scheme != "http" || c.emulator != nil || fromHost {
		return nil
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return exit.WithKind(fmt.Errorf("the encryption key is not sent over plain HTTP to %s: use https", endpointText(c.endpoint)), exit.ErrConfig)
}
