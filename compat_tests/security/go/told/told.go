// Package told has what these programs are told, by a JSON object: where to, and as whom.
package told

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Patience is how long a program tries.
const Patience = 20 * time.Second

// Login says where to and as whom; what is empty is not used.
type Login struct {
	Address, Topic, Mechanism, User, Password, Token string
	Ca, Own                                          string // PEM files; Own has key and certificate
	Service, Realm, Keytab, Config                   string // of Kerberos; the last two are files
}

// Read returns the first argument.
func Read() Login {
	var login Login
	if err := json.Unmarshal([]byte(os.Args[1]), &login); err != nil {
		panic(err)
	}
	return login
}

// TLS returns what is wanted of the connection, nil if it is plain.
func (login Login) TLS() *tls.Config {
	if login.Ca == "" {
		return nil
	}
	pem, err := os.ReadFile(login.Ca)
	if err != nil {
		panic(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if login.Own != "" {
		own, err := tls.LoadX509KeyPair(login.Own, login.Own)
		if err != nil {
			panic(err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config
}

// Refused says why, and ends the program.
func Refused(err error) {
	fmt.Println("refused:", err)
	os.Exit(0)
}
