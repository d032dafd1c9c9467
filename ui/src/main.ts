// The entry: starts the shell.
import { start } from './shell/start';

start();
