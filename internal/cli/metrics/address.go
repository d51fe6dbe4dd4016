package metrics

import (
	"errors"
	"net"
	"strconv"
)

// Address is the value of --listen, a HOST:PORT. "" serves nothing. Port 0 takes a free one. Without a HOST, all
// addresses of the machine are served. It implements [github.com/spf13/pflag.Value].
type Address string

// Type implements pflag.Value.
func (a *Address) Type() string { return "HOST:PORT" }

// String implements pflag.Value.
func (a *Address) String() string { return string(*a) }

// Set implements pflag.Value.
func (a *Address) Set(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("want HOST:PORT, such as 127.0.0.1:9464")
	}
	*a = Address(text)
	return nil
}
